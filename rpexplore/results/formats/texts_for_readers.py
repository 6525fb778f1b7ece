"""What people read in exports, in every language: noise, guarantee, crosstabs, the page."""

from collections.abc import Mapping

READER_TEXTS: Mapping[str, tuple[str, str, str, str]] = {
    # words
    "and": ("and", "und", "et", "y"),
    "between": ("; ", "; ", " ; ", "; "),
    "at": ("at", "bei", "pour", "con"),
    "or": (
        "{first} or {last}",
        "{first} oder {last}",
        "{first} ou {last}",
        "{first} o {last}",
    ),
    "range": (
        "{first} to {last}",
        "{first} bis {last}",
        "{first} à {last}",
        "{first} a {last}",
    ),
    "to_under": (
        "{first} to under {last}",
        "{first} bis unter {last}",
        "{first} à moins de {last}",
        "{first} a menos de {last}",
    ),
    "up_to": ("up to {first}", "bis {first}", "jusqu’à {first}", "hasta {first}"),
    "under": ("under {first}", "unter {first}", "moins de {first}", "menos de {first}"),
    "all_values": ("all", "insgesamt", "ensemble", "total"),
    # heads of rows and columns
    "total": ("Total", "Insgesamt", "Total", "Total"),
    "all": ("All", "Insgesamt", "Ensemble", "Total"),
    "count": ("count", "Anzahl", "effectif", "recuento"),
    "share": ("share", "Anteil", "part", "proporción"),
    "code": ("{name} (code)", "{name} (Code)", "{name} (code)", "{name} (código)"),
    "own_count": ("own count", "Zählung", "comptage", "recuento"),
    # headings
    "records_by": (
        "Records by {names}",
        "Datensätze nach {names}",
        "Enregistrements selon {names}",
        "Registros por {names}",
    ),
    "records_in_all": (
        "Records in all",
        "Datensätze insgesamt",
        "Ensemble des enregistrements",
        "Total de registros",
    ),
    "figures_by": (
        "Figures by {names}",
        "Werte nach {names}",
        "Valeurs selon {names}",
        "Valores por {names}",
    ),
    "figures_in_all": (
        "Figures in all",
        "Werte insgesamt",
        "Ensemble des valeurs",
        "Valores totales",
    ),
    "per_cent_of_row": (
        "in per cent of each row",
        "in Prozent jeder Zeile",
        "en pourcentage de chaque ligne",
        "en porcentaje de cada fila",
    ),
    "per_cent_of_column": (
        "in per cent of each column",
        "in Prozent jeder Spalte",
        "en pourcentage de chaque colonne",
        "en porcentaje de cada columna",
    ),
    "per_cent_of_total": (
        "in per cent of all",
        "in Prozent aller",
        "en pourcentage de l’ensemble",
        "en porcentaje del total",
    ),
    # what noise is in the figures, for people who have never heard of it
    "noisy": (
        "Every figure is a count with random noise: before publication, a random number was added "
        "to the true count or taken from it. The noise protects the people in the data. Because of "
        "it, nobody can be sure from these tables whether a given person is in the data, or what "
        "that person answered.",
        "Jeder Wert ist eine Anzahl mit Zufallsrauschen: Vor der Veröffentlichung wurde zur wahren "
        "Anzahl eine Zufallszahl addiert oder von ihr abgezogen. Das Rauschen schützt die Menschen "
        "in den Daten. Seinetwegen kann niemand anhand dieser Tabellen sicher sein, ob eine "
        "bestimmte Person in den Daten vorkommt oder was sie geantwortet hat.",
        "Chaque chiffre est un effectif auquel on a ajouté un bruit aléatoire : avant la "
        "publication, un nombre tiré au hasard a été ajouté à l’effectif exact ou en a été "
        "retranché. Ce bruit protège les personnes présentes dans les données. Grâce à lui, "
        "personne ne peut savoir avec certitude, à partir de ces tableaux, si une personne donnée "
        "figure dans les données ni ce qu’elle a répondu.",
        "Cada cifra es un recuento con ruido aleatorio: antes de la publicación se sumó al "
        "recuento verdadero, o se le restó, un número al azar. El ruido protege a las personas que "
        "están en los datos. Gracias a él, nadie puede saber con certeza a partir de estas tablas "
        "si una persona determinada está en los datos ni qué respondió.",
    ),
    "noisy_replaced": (
        "Every figure is a count with random noise: before publication, a random number was added "
        "to the true count or taken from it. The noise protects what the people in the data "
        "answered: nobody can be sure of it from these tables. It does not hide who is in the "
        "data.",
        "Jeder Wert ist eine Anzahl mit Zufallsrauschen: Vor der Veröffentlichung wurde zur wahren "
        "Anzahl eine Zufallszahl addiert oder von ihr abgezogen. Das Rauschen schützt, was die "
        "Menschen in den Daten geantwortet haben: Niemand kann dessen anhand dieser Tabellen "
        "sicher sein. Es verbirgt nicht, wer in den Daten vorkommt.",
        "Chaque chiffre est un effectif auquel on a ajouté un bruit aléatoire : avant la "
        "publication, un nombre tiré au hasard a été ajouté à l’effectif exact ou en a été "
        "retranché. Ce bruit protège ce que les personnes présentes dans les données ont répondu : "
        "personne ne peut le savoir avec certitude à partir de ces tableaux. Il ne cache pas qui "
        "figure dans les données.",
        "Cada cifra es un recuento con ruido aleatorio: antes de la publicación se sumó al "
        "recuento verdadero, o se le restó, un número al azar. El ruido protege lo que "
        "respondieron las personas que están en los datos: nadie puede saberlo con certeza a "
        "partir de estas tablas. No oculta quién está en los datos.",
    ),
    "only_exact": (
        "Only the totals of {totals} are exact: they have no noise, and whatever they tell is not "
        "protected.",
        "Nur die Summen nach {totals} sind exakt: Sie enthalten kein Rauschen, und was sie "
        "verraten, ist nicht geschützt.",
        "Seuls les totaux de {totals} sont exacts : ils sont sans bruit, et ce qu’ils révèlent "
        "n’est pas protégé.",
        "Solo los totales de {totals} son exactos: no tienen ruido, y lo que revelan no está "
        "protegido.",
    ),
    "noise_size": (
        "The noise is as often upwards as downwards, and its size is known. The margin of error "
        "says how far a figure may be from the true count: for 95 of 100 figures the true count is "
        "no further away. A small count can disappear in the noise, or even come out below zero.",
        "Das Rauschen weicht ebenso oft nach oben wie nach unten ab, und seine Größe ist bekannt. "
        "Die Fehlerspanne sagt, wie weit ein Wert von der wahren Anzahl entfernt sein kann: Bei 95 "
        "von 100 Werten liegt die wahre Anzahl nicht weiter entfernt. Eine kleine Anzahl kann im "
        "Rauschen untergehen oder sogar negativ ausfallen.",
        "Le bruit va aussi souvent vers le haut que vers le bas, et son ampleur est connue. La "
        "marge d’erreur indique de combien un chiffre peut s’écarter de l’effectif exact : pour 95 "
        "chiffres sur 100, l’effectif exact n’est pas plus éloigné. Un petit effectif peut "
        "disparaître dans le bruit, voire devenir négatif.",
        "El ruido va tantas veces hacia arriba como hacia abajo y su magnitud es conocida. El "
        "margen de error indica cuánto puede distar una cifra del recuento verdadero: en 95 de "
        "cada 100 cifras, el recuento verdadero no está más lejos. Un recuento pequeño puede "
        "desaparecer en el ruido o incluso resultar negativo.",
    ),
    "processed": (
        "These figures were computed from noisy counts: before publication, random numbers were "
        "added to the true counts to protect the people in the data. Then the figures were made "
        "easier to read ({label}). They are no longer right on average, least of all small ones. "
        "The stated margins are those of the noisy counts behind them.",
        "Diese Werte wurden aus verrauschten Anzahlen berechnet: Vor der Veröffentlichung wurden "
        "zu den wahren Anzahlen Zufallszahlen addiert, um die Menschen in den Daten zu schützen. "
        "Danach wurden die Werte leichter lesbar gemacht ({label}). Sie stimmen nicht mehr im "
        "Mittel, am wenigsten die kleinen. Die angegebenen Fehlerspannen sind die der verrauschten "
        "Anzahlen, aus denen sie berechnet wurden.",
        "Ces chiffres ont été calculés à partir d’effectifs bruités : avant la publication, des "
        "nombres tirés au hasard ont été ajoutés aux effectifs exacts pour protéger les personnes "
        "présentes dans les données. Les chiffres ont ensuite été rendus plus lisibles ({label}). "
        "Ils ne sont plus exacts en moyenne, surtout les plus petits. Les marges indiquées sont "
        "celles des effectifs bruités dont ils sont issus.",
        "Estas cifras se calcularon a partir de recuentos con ruido: antes de la publicación se "
        "sumaron números al azar a los recuentos verdaderos para proteger a las personas que están "
        "en los datos. Después se hicieron más fáciles de leer ({label}). Ya no son correctas en "
        "promedio, sobre todo las pequeñas. Los márgenes indicados son los de los recuentos con "
        "ruido de los que proceden.",
    ),
    "by_model": (
        "These figures are best guesses of a model, computed from noisy counts: random numbers "
        "were added to the true counts to protect the people in the data. Most guesses are nearer "
        "to the truth than the noisy counts. Their margins of error hold only as far as the model "
        "does: where a small group differs from what is usual, a guess may hide it ({label}).",
        "Diese Werte sind modellbasierte Schätzungen aus verrauschten Anzahlen: Zu den wahren "
        "Anzahlen wurden Zufallszahlen addiert, um die Menschen in den Daten zu schützen. Die "
        "meisten Schätzungen liegen näher an der Wahrheit als die verrauschten Anzahlen. Ihre "
        "Fehlerspannen gelten nur, soweit das Modell zutrifft: Wo eine kleine Gruppe vom Üblichen "
        "abweicht, kann eine Schätzung das verdecken ({label}).",
        "Ces chiffres sont des estimations fondées sur un modèle, calculées à partir d’effectifs "
        "bruités : des nombres tirés au hasard ont été ajoutés aux effectifs exacts pour protéger "
        "les personnes présentes dans les données. La plupart des estimations sont plus proches de "
        "la réalité que les effectifs bruités. Leurs marges d’erreur ne valent que dans la mesure "
        "où le modèle est juste : là où un petit groupe s’écarte de l’ordinaire, une estimation "
        "peut le masquer ({label}).",
        "Estas cifras son estimaciones basadas en un modelo, calculadas a partir de recuentos con "
        "ruido: se sumaron números al azar a los recuentos verdaderos para proteger a las personas "
        "que están en los datos. La mayoría de las estimaciones está más cerca de la verdad que "
        "los recuentos con ruido. Sus márgenes de error solo valen en la medida en que el modelo "
        "es correcto: donde un grupo pequeño se aparta de lo habitual, una estimación puede "
        "ocultarlo ({label}).",
    ),
    "noise_alone": (
        "The margins of error are those of the noise alone. Errors that were in the data before, "
        "such as those of a sample or of wrong answers, come on top.",
        "Die Fehlerspannen sind die des Rauschens allein. Fehler, die schon vorher in den Daten "
        "waren, etwa aus einer Stichprobe oder durch falsche Angaben, kommen hinzu.",
        "Les marges d’erreur sont celles du bruit seul. Les erreurs déjà présentes dans les "
        "données, comme celles d’un échantillonnage ou de réponses inexactes, s’y ajoutent.",
        "Los márgenes de error son los del ruido únicamente. A ellos se suman los errores que ya "
        "estaban en los datos, como los de una muestra o los de respuestas erróneas.",
    ),
    "nonnegative": (
        "nonnegative and consistent",
        "nicht negativ und widerspruchsfrei",
        "non négatifs et cohérents",
        "no negativas y coherentes",
    ),
    "smooth": (
        "smooth, best guesses by a model",
        "geglättet, modellbasiert geschätzt",
        "lissés, estimés par un modèle",
        "suavizadas, estimadas por un modelo",
    ),
    "whole": (
        "rounded to whole numbers",
        "auf ganze Zahlen gerundet",
        "arrondis à l’unité",
        "redondeadas a números enteros",
    ),
    "multiples": (
        "rounded to multiples of {base}",
        "auf Vielfache von {base} gerundet",
        "arrondis aux multiples de {base}",
        "redondeadas a múltiplos de {base}",
    ),
    "adding_up": (
        "The errors of different cells go together, so a sum of cells has another standard error "
        "than theirs suggest; where there is a smaller table, use its cell.",
        "Die Fehler verschiedener Zellen hängen zusammen, deshalb hat eine Summe von Zellen einen "
        "anderen Standardfehler, als deren Fehler vermuten lassen; wo es eine kleinere Tabelle "
        "gibt, ist deren Zelle zu verwenden.",
        "Les erreurs des différentes cellules sont liées entre elles : l’erreur-type d’une somme "
        "de cellules n’est pas celle que leurs erreurs laissent supposer ; s’il existe un tableau "
        "plus agrégé, utilisez sa cellule.",
        "Los errores de las distintas celdas están relacionados, por lo que el error estándar de "
        "una suma de celdas no es el que sus errores hacen suponer; si existe una tabla más "
        "agregada, utilice la celda de esta.",
    ),
    "adding_up_counts": (
        "The errors of different counts go together, so a sum of them has another standard error "
        "than theirs suggest; make the sum a count of its own.",
        "Die Fehler verschiedener Zählungen hängen zusammen, deshalb hat ihre Summe einen anderen "
        "Standardfehler, als deren Fehler vermuten lassen; die Summe ist als eigene Zählung zu "
        "planen.",
        "Les erreurs des différents comptages sont liées entre elles : l’erreur-type de leur somme "
        "n’est pas celle que leurs erreurs laissent supposer ; faites de la somme un comptage à "
        "part entière.",
        "Los errores de los distintos recuentos están relacionados, por lo que el error estándar "
        "de su suma no es el que sus errores hacen suponer; convierta la suma en un recuento "
        "propio.",
    ),
    # the guarantee; English exports have the words of the release instead
    "guarantee": (
        "What was measured for these tables is ρ-zCDP, all together, with {rho} for {unit}: adding "
        "or removing it changes the distribution of everything that is published by no more than "
        "that. It is therefore (ε, δ)-differentially private with {epsilons}.",
        "Was für diese Tabellen gemessen wurde, erfüllt insgesamt ρ-zCDP mit {rho} für {unit}: Das "
        "Hinzufügen oder Entfernen ändert die Verteilung von allem, was veröffentlicht wird, um "
        "nicht mehr als das. Daraus folgt (ε, δ)-Differential-Privacy mit {epsilons}.",
        "L’ensemble des mesures effectuées pour ces tableaux vérifie ρ-zCDP avec {rho} pour "
        "{unit} : son ajout ou son retrait ne modifie que dans cette limite la distribution de "
        "tout ce qui est publié. Il en résulte une confidentialité différentielle (ε, δ) avec "
        "{epsilons}.",
        "El conjunto de lo que se midió para estas tablas cumple ρ-zCDP con {rho} para {unit}: "
        "añadirlo o quitarlo no cambia más que eso la distribución de todo lo que se publica. De "
        "ello se sigue una privacidad diferencial (ε, δ) con {epsilons}.",
    ),
    "guarantee_replaced": (
        "What was measured for these tables is ρ-zCDP, all together, with {rho} for {unit}: "
        "replacing what it holds changes the distribution of everything that is published by no "
        "more than that. The number of records is public. It is therefore (ε, δ)-differentially "
        "private with {epsilons}.",
        "Was für diese Tabellen gemessen wurde, erfüllt insgesamt ρ-zCDP mit {rho} für {unit}: "
        "Andere Angaben darin ändern die Verteilung von allem, was veröffentlicht wird, um nicht "
        "mehr als das. Die Zahl der Datensätze ist öffentlich. Daraus folgt "
        "(ε, δ)-Differential-Privacy mit {epsilons}.",
        "L’ensemble des mesures effectuées pour ces tableaux vérifie ρ-zCDP avec {rho} pour "
        "{unit} : le remplacement de son contenu ne modifie que dans cette limite la distribution "
        "de tout ce qui est publié. Le nombre d’enregistrements est public. Il en résulte une "
        "confidentialité différentielle (ε, δ) avec {epsilons}.",
        "El conjunto de lo que se midió para estas tablas cumple ρ-zCDP con {rho} para {unit}: "
        "sustituir su contenido no cambia más que eso la distribución de todo lo que se publica. "
        "El número de registros es público. De ello se sigue una privacidad diferencial (ε, δ) con "
        "{epsilons}.",
    ),
    "guarantee_exact": (
        "What was measured for these tables is ρ-zCDP, all together, with {rho} for {unit}: a "
        "change of it that keeps the exact totals, or an exchange of values with another record "
        "(of each exact total all or none), changes the distribution of everything that is "
        "published by no more than that. It is therefore (ε, δ)-differentially private with "
        "{epsilons}.",
        "Was für diese Tabellen gemessen wurde, erfüllt insgesamt ρ-zCDP mit {rho} für {unit}: "
        "Eine Änderung darin, bei der die exakten Summen gleich bleiben, oder ein Austausch von "
        "Angaben mit einem anderen Datensatz (von jeder exakten Summe alle oder keine) ändert die "
        "Verteilung von allem, was veröffentlicht wird, um nicht mehr als das. Daraus folgt "
        "(ε, δ)-Differential-Privacy mit {epsilons}.",
        "L’ensemble des mesures effectuées pour ces tableaux vérifie ρ-zCDP avec {rho} pour "
        "{unit} : une modification qui conserve les totaux exacts, ou un échange de valeurs avec "
        "un autre enregistrement (toutes celles d’un total exact ou aucune), ne modifie que dans "
        "cette limite la distribution de tout ce qui est publié. Il en résulte une confidentialité "
        "différentielle (ε, δ) avec {epsilons}.",
        "El conjunto de lo que se midió para estas tablas cumple ρ-zCDP con {rho} para {unit}: un "
        "cambio que conserve los totales exactos, o un intercambio de valores con otro registro "
        "(de cada total exacto todos o ninguno), no cambia más que eso la distribución de todo lo "
        "que se publica. De ello se sigue una privacidad diferencial (ε, δ) con {epsilons}.",
    ),
    "one_record": ("one record", "einen Datensatz", "un enregistrement", "un registro"),
    "one_person": (
        "one person with at most {n} records",
        "eine Person mit höchstens {n} Datensätzen",
        "une personne ayant au plus {n} enregistrements",
        "una persona con un máximo de {n} registros",
    ),
    "one_person_of_one": (
        "one person with at most 1 record",
        "eine Person mit höchstens einem Datensatz",
        "une personne ayant au plus un enregistrement",
        "una persona con un máximo de un registro",
    ),
    "universe": (
        "Only records with {condition} are counted.",
        "Gezählt sind nur Datensätze mit {condition}.",
        "Seuls les enregistrements vérifiant {condition} sont comptés.",
        "Solo se cuentan los registros con {condition}.",
    ),
    "in_full": (
        "The full wording is that of the results, in English; the SHA-256 of their manifest is "
        "{sha256}.",
        "Der vollständige, maßgebliche Wortlaut steht auf Englisch bei den Ergebnissen, deren "
        "Manifest den SHA-256-Wert {sha256} hat.",
        "Le texte complet, qui fait foi, accompagne les résultats en anglais ; le SHA-256 de leur "
        "manifeste est {sha256}.",
        "El texto completo, que es el que hace fe, acompaña a los resultados en inglés; el SHA-256 "
        "de su manifiesto es {sha256}.",
    ),
    # below a crosstab
    "margin": (
        "Margin of error (95 %): {listed}.",
        "Fehlerspanne (95 %): {listed}.",
        "Marge d’erreur (95 %) : {listed}.",
        "Margen de error (95 %): {listed}.",
    ),
    "margin_by_model": (
        "Margin of error, 95 % if the model holds: {listed}.",
        "Fehlerspanne, 95 %, falls das Modell zutrifft: {listed}.",
        "Marge d’erreur, à 95 % si le modèle est juste : {listed}.",
        "Margen de error, del 95 % si el modelo es correcto: {listed}.",
    ),
    "margin_where": (
        "±{margin} {where}",
        "±{margin} {where}",
        "±{margin} {where}",
        "±{margin} {where}",
    ),
    "margin_points_where": (
        "±{margin} percentage points {where}",
        "±{margin} Prozentpunkte {where}",
        "±{margin} points de pourcentage {where}",
        "±{margin} puntos porcentuales {where}",
    ),
    "in_cells": (
        "in every cell",
        "in jeder Zelle",
        "dans chaque cellule",
        "en cada celda",
    ),
    "in_row_totals": (
        "in the totals of rows",
        "in den Zeilensummen",
        "dans les totaux des lignes",
        "en los totales de las filas",
    ),
    "in_column_totals": (
        "in the totals of columns",
        "in den Spaltensummen",
        "dans les totaux des colonnes",
        "en los totales de las columnas",
    ),
    "in_grand_total": (
        "in the grand total",
        "in der Gesamtsumme",
        "dans le total général",
        "en el total general",
    ),
    "in_total": ("in the total", "in der Summe", "dans le total", "en el total"),
    "beside_figures": (
        "beside the figures",
        "neben den Werten",
        "à côté des chiffres",
        "junto a las cifras",
    ),
    "below_for_figures": (
        "in the table below for the figures",
        "für die Werte in der Tabelle darunter",
        "dans le tableau ci-dessous pour les chiffres",
        "para las cifras, en la tabla de abajo",
    ),
    "no_margin_of_shares": (
        "Margins of error of these shares are not known.",
        "Fehlerspannen dieser Anteile sind nicht bekannt.",
        "Les marges d’erreur de ces parts ne sont pas connues.",
        "No se conocen los márgenes de error de estas proporciones.",
    ),
    "biased": (
        "These counts are biased, and no error of them is known. The unbiased counts beside them "
        "are within {within} of the true ones, 95 % of the time.",
        "Diese Anzahlen sind verzerrt, und ihr Fehler ist nicht bekannt. Die unverzerrten Anzahlen "
        "daneben liegen in 95 % der Fälle höchstens {within} von den wahren entfernt.",
        "Ces effectifs sont biaisés et leur erreur n’est pas connue. Les effectifs sans biais "
        "correspondants s’écartent des effectifs exacts de {within} au plus, dans 95 % des cas.",
        "Estos recuentos están sesgados y no se conoce su error. Los recuentos insesgados "
        "correspondientes distan de los verdaderos como mucho {within}, en el 95 % de los casos.",
    ),
    "from_to": (
        "{low} (the most accurate figure) to {high}",
        "{low} (genauester Wert) bis {high}",
        "{low} (chiffre le plus précis) à {high}",
        "{low} (la cifra más precisa) a {high}",
    ),
    "quality": (
        "Quality: {limits} · E above, or not above 0.",
        "Qualität: {limits} · E darüber oder nicht über 0.",
        "Qualité : {limits} · E au-dessus, ou chiffre non supérieur à 0.",
        "Calidad: {limits} · E por encima, o cifra no superior a 0.",
    ),
    "quality_of_counts": (
        "Quality (of the counts): {limits} · E above, or not above 0.",
        "Qualität (der Anzahlen): {limits} · E darüber oder nicht über 0.",
        "Qualité (des effectifs) : {limits} · E au-dessus, ou effectif non supérieur à 0.",
        "Calidad (de los recuentos): {limits} · E por encima, o recuento no superior a 0.",
    ),
    "first_limit": ("A CV ≤ {limit} %", "A VK ≤ {limit} %", "A CV ≤ {limit} %", "A CV ≤ {limit} %"),
    "limit": (
        "{letter} ≤ {limit} %",
        "{letter} ≤ {limit} %",
        "{letter} ≤ {limit} %",
        "{letter} ≤ {limit} %",
    ),
    "in_brackets": (
        "In brackets: not publishable (CV above {limit} %, or not above 0).",
        "In Klammern: nicht veröffentlichungsreif (VK über {limit} % oder Wert nicht über 0).",
        "Entre parenthèses : non publiable (CV supérieur à {limit} %, ou chiffre non supérieur à "
        "0).",
        "Entre paréntesis: no publicable (CV superior al {limit} %, o cifra no superior a 0).",
    ),
    "left_empty": (
        "Left empty: not publishable (CV above {limit} %, or not above 0).",
        "Leer gelassen: nicht veröffentlichungsreif (VK über {limit} % oder Wert nicht über 0).",
        "Laissé vide : non publiable (CV supérieur à {limit} %, ou chiffre non supérieur à 0).",
        "En blanco: no publicable (CV superior al {limit} %, o cifra no superior a 0).",
    ),
    "cells_add_up": (
        "Cells add up to the totals, before rounding.",
        "Die Zellen ergeben zusammen die Summen, vor dem Runden.",
        "La somme des cellules est égale aux totaux, avant arrondi.",
        "Las celdas suman los totales, antes del redondeo.",
    ),
    "totals_of_smaller": (
        "The totals are those of the smaller tables; rounded cells need not add up to them.",
        "Die Summen sind die der kleineren Tabellen; gerundete Zellen müssen sich nicht zu ihnen "
        "addieren.",
        "Les totaux sont ceux des tableaux plus agrégés ; la somme des cellules arrondies peut en "
        "différer.",
        "Los totales son los de las tablas más agregadas; la suma de las celdas redondeadas puede "
        "no coincidir con ellos.",
    ),
    "first_rows": (
        "The first {n} of {n_all} rows are shown.",
        "Die ersten {n} von {n_all} Zeilen sind dargestellt.",
        "Les {n} premières lignes sur {n_all} sont affichées.",
        "Se muestran las primeras {n} de {n_all} filas.",
    ),
    "first_values": (
        "Of the {n_all} values of {name} the first {n} are shown.",
        "Von den {n_all} Werten von {name} sind die ersten {n} dargestellt.",
        "Sur les {n_all} valeurs de {name}, les {n} premières sont affichées.",
        "De los {n_all} valores de {name} se muestran los primeros {n}.",
    ),
    "as_said": ("{text}", "{text}", "{text}", "{text}"),  # of codebooks alone: "sex: female."
    "design_effect": (
        "design effect {effect}",
        "Designeffekt {effect}",
        "effet de plan {effect}",
        "efecto de diseño {effect}",
    ),
    "design_effect_of": (
        "{effect} of {table}",
        "{effect} bei {table}",
        "{effect} pour {table}",
        "{effect} en {table}",
    ),
    "sampling_fraction": (
        "sampling fraction {share}",
        "Auswahlsatz {share}",
        "taux de sondage {share}",
        "fracción de muestreo {share}",
    ),
    "sampling": (
        "CVs are of the total error: noise and sampling ({design}).",
        "Die VK beziehen sich auf den Gesamtfehler aus Rauschen und Stichprobe ({design}).",
        "Les CV portent sur l’erreur totale : bruit et échantillonnage ({design}).",
        "Los CV se refieren al error total: ruido y muestreo ({design}).",
    ),
    # the page for readers
    "how_to_read": (
        "How to read these figures",
        "So sind diese Werte zu lesen",
        "Comment lire ces chiffres",
        "Cómo leer estas cifras",
    ),
    "quality_letters": (
        "The letter behind a figure is its quality, by the coefficient of variation (CV), the "
        "standard error as a share of the figure: {limits}, E above, or a figure that is not above "
        "0.",
        "Der Buchstabe hinter einem Wert gibt seine Qualität an, gemessen am "
        "Variationskoeffizienten (VK), dem Standardfehler im Verhältnis zum Wert: {limits}, E "
        "darüber oder ein Wert, der nicht über 0 liegt.",
        "La lettre qui suit un chiffre indique sa qualité d’après le coefficient de variation "
        "(CV), c’est-à-dire l’erreur-type rapportée au chiffre : {limits}, E au-dessus, ou un "
        "chiffre qui n’est pas supérieur à 0.",
        "La letra que sigue a una cifra indica su calidad según el coeficiente de variación (CV), "
        "es decir, el error estándar en proporción a la cifra: {limits}, E por encima, o una cifra "
        "que no es superior a 0.",
    ),
    "first_letter": (
        "{letter} at most {limit} %",
        "{letter} höchstens {limit} %",
        "{letter} au plus {limit} %",
        "{letter} como máximo el {limit} %",
    ),
    "next_letter": (
        "{letter} {limit} %",
        "{letter} {limit} %",
        "{letter} {limit} %",
        "{letter} el {limit} %",
    ),
    "too_uncertain_grey": (
        "Figures that are too uncertain to be relied on, with a CV above {limit} % or not above 0, "
        "are grey and in brackets.",
        "Werte, die zu unsicher sind, um sich auf sie zu stützen, mit einem VK über {limit} % oder "
        "nicht über 0, sind grau und stehen in Klammern.",
        "Les chiffres trop incertains pour être utilisés, avec un CV supérieur à {limit} % ou non "
        "supérieurs à 0, sont en gris et entre parenthèses.",
        "Las cifras demasiado inciertas para confiar en ellas, con un CV superior al {limit} % o "
        "no superiores a 0, están en gris y entre paréntesis.",
    ),
    "too_uncertain_empty": (
        "Figures that are too uncertain to be relied on, with a CV above {limit} % or not above 0, "
        "are left empty.",
        "Werte, die zu unsicher sind, um sich auf sie zu stützen, mit einem VK über {limit} % oder "
        "nicht über 0, sind leer gelassen.",
        "Les chiffres trop incertains pour être utilisés, avec un CV supérieur à {limit} % ou non "
        "supérieurs à 0, sont laissés vides.",
        "Las cifras demasiado inciertas para confiar en ellas, con un CV superior al {limit} % o "
        "no superiores a 0, se dejan en blanco.",
    ),
    "guarantee_in_full": (
        "The guarantee, in full",
        "Die Garantie",
        "La garantie",
        "La garantía",
    ),
    "tables": ("Tables", "Tabellen", "Tableaux", "Tablas"),
    "one_table": ("1 table", "1 Tabelle", "1 tableau", "1 tabla"),
    "n_tables": ("{n} tables", "{n} Tabellen", "{n} tableaux", "{n} tablas"),
    "search": (
        "Search titles and rows",
        "Titel und Zeilen durchsuchen",
        "Chercher dans les titres et les lignes",
        "Buscar en los títulos y las filas",
    ),
    "tables_found": (
        "{found} of {n} tables",
        "{found} von {n} Tabellen",
        "{found} sur {n} tableaux",
        "{found} de {n} tablas",
    ),
    "made_by": (
        "Made by rpexplore {version} from results whose manifest has the SHA-256 {sha256}.",
        "Erstellt mit rpexplore {version} aus Ergebnissen, deren Manifest den SHA-256-Wert "
        "{sha256} hat.",
        "Produit par rpexplore {version} à partir de résultats dont le manifeste a pour SHA-256 "
        "{sha256}.",
        "Elaborado con rpexplore {version} a partir de resultados cuyo manifiesto tiene el SHA-256 "
        "{sha256}.",
    ),
    "licence": ("Licence:", "Lizenz:", "Licence :", "Licencia:"),
}
"""By key: in English, German, French and Spanish."""
