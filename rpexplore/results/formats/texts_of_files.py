"""What files of exports say of themselves, in every language: workbooks, PX, SDMX, READMEs."""

from collections.abc import Mapping

from rpexplore.domain.result_schema import (
    EMPTY_NOTE,
    IMPOSSIBLE_NOTE,
    INTERVAL_MEANING,
    PROCESSED_VALUE,
    RELEASED,
    STANDARD_ERROR_MEANING,
    UNBIASED_VALUE,
)

FILE_TEXTS: Mapping[str, tuple[str, str, str, str]] = {
    # the workbook
    "contents": ("Contents", "Inhalt", "Sommaire", "Contenido"),
    "notes": ("Notes", "Hinweise", "Notes", "Notas"),
    "how_to_read_short": (
        "How to read the figures",
        "So sind die Werte zu lesen",
        "Comment lire les chiffres",
        "Cómo leer las cifras",
    ),
    "figures": ("Figures", "Werte", "Chiffres", "Cifras"),
    "quality_term": ("Quality", "Qualität", "Qualité", "Calidad"),
    "quality_note": (
        "The letter behind a figure is its quality by the coefficient of variation (CV), the "
        "standard error as a share of the figure: {limits}, E above or not above 0.",
        "Der Buchstabe hinter einem Wert gibt seine Qualität nach dem Variationskoeffizienten (VK) "
        "an, dem Standardfehler im Verhältnis zum Wert: {limits}, E darüber oder nicht über 0.",
        "La lettre qui suit un chiffre indique sa qualité d’après le coefficient de variation "
        "(CV), l’erreur-type rapportée au chiffre : {limits}, E au-dessus ou non supérieur à 0.",
        "La letra que sigue a una cifra indica su calidad según el coeficiente de variación (CV), "
        "el error estándar en proporción a la cifra: {limits}, E por encima o no superior a 0.",
    ),
    "not_publishable": (
        "Not publishable",
        "Nicht veröffentlichungsreif",
        "Non publiable",
        "No publicable",
    ),
    "not_publishable_grey": (
        "Figures with a CV above {limit} %, or not above 0, are grey and in brackets.",
        "Werte mit einem VK über {limit} % oder nicht über 0 sind grau und stehen in Klammern.",
        "Les chiffres dont le CV est supérieur à {limit} %, ou qui ne sont pas supérieurs à 0, "
        "sont en gris et entre parenthèses.",
        "Las cifras con un CV superior al {limit} %, o no superiores a 0, están en gris y entre "
        "paréntesis.",
    ),
    "not_publishable_empty": (
        "Figures with a CV above {limit} %, or not above 0, are left empty.",
        "Werte mit einem VK über {limit} % oder nicht über 0 sind leer gelassen.",
        "Les chiffres dont le CV est supérieur à {limit} %, ou qui ne sont pas supérieurs à 0, "
        "sont laissés vides.",
        "Las cifras con un CV superior al {limit} %, o no superiores a 0, se dejan en blanco.",
    ),
    "adding_up_term": ("Adding up", "Summenbildung", "Sommes", "Sumas"),
    "guarantee_term": ("Guarantee", "Garantie", "Garantie", "Garantía"),
    "source": ("Source", "Quelle", "Source", "Fuente"),
    "manifest": (
        "SHA-256 of the manifest: {sha256}",
        "SHA-256 des Manifests: {sha256}",
        "SHA-256 du manifeste : {sha256}",
        "SHA-256 del manifiesto: {sha256}",
    ),
    "margins_head": (
        "Margins of error (95 %)",
        "Fehlerspannen (95 %)",
        "Marges d’erreur (95 %)",
        "Márgenes de error (95 %)",
    ),
    # PX files: figures, their units, and what they are
    "head_value": ("value", "Wert", "valeur", "valor"),
    "head_estimate": (
        "unbiased value",
        "unverzerrter Wert",
        "valeur sans biais",
        "valor insesgado",
    ),
    "head_error": ("standard error", "Standardfehler", "erreur-type", "error estándar"),
    "head_model_error": (
        "model error",
        "Modellfehler",
        "erreur du modèle",
        "error del modelo",
    ),
    "head_lower": (
        "lower 95",
        "Untergrenze 95 %",
        "borne inférieure 95 %",
        "límite inferior 95 %",
    ),
    "head_upper": (
        "upper 95",
        "Obergrenze 95 %",
        "borne supérieure 95 %",
        "límite superior 95 %",
    ),
    "head_margin": (
        "margin 95",
        "Fehlerspanne 95 %",
        "marge d’erreur 95 %",
        "margen de error 95 %",
    ),
    "head_target": ("target", "Zielwert", "objectif", "objetivo"),
    "head_share": ("share", "Anteil", "part", "proporción"),
    "head_share_error": (
        "share standard error",
        "Standardfehler des Anteils",
        "erreur-type de la part",
        "error estándar de la proporción",
    ),
    "figure": ("figure", "Kennzahl", "indicateur", "indicador"),
    "unit_records": ("records", "Datensätze", "enregistrements", "registros"),
    "unit_number": ("number", "Anzahl", "nombre", "número"),
    "value_noisy": (
        RELEASED[0].meaning,
        "Die verrauschte Anzahl. Unverzerrt; kann negativ sein.",
        "L’effectif bruité. Sans biais ; peut être négatif.",
        "El recuento con ruido. Insesgado; puede ser negativo.",
    ),
    "value_processed": (
        PROCESSED_VALUE.meaning,
        "Die Anzahl nach der Nachbearbeitung.",
        "L’effectif après traitement.",
        "El recuento tras el tratamiento posterior.",
    ),
    "estimate_meaning": (
        UNBIASED_VALUE.meaning,
        "Die unverzerrte verrauschte Anzahl. Nicht gerundet; kann negativ sein.",
        "L’effectif bruité sans biais. Non arrondi ; peut être négatif.",
        "El recuento con ruido insesgado. Sin redondear; puede ser negativo.",
    ),
    "error_meaning": (
        STANDARD_ERROR_MEANING,
        "Nur der Fehler durch das Rauschen; Fehler, die schon in den Datensätzen waren, kommen "
        "hinzu.",
        "Due au seul bruit de confidentialité ; les erreurs déjà présentes dans les "
        "enregistrements s’y ajoutent.",
        "Solo el del ruido de privacidad; a él se suman los errores que ya estaban en los "
        "registros.",
    ),
    "model_error_meaning": (
        "The root mean squared error of the value if the model holds; not guaranteed.",
        "Die Wurzel des mittleren quadratischen Fehlers des Wertes, falls das Modell zutrifft; "
        "nicht garantiert.",
        "La racine de l’erreur quadratique moyenne de la valeur si le modèle est juste ; non "
        "garantie.",
        "La raíz del error cuadrático medio del valor si el modelo es correcto; no garantizada.",
    ),
    "interval_meaning": (
        INTERVAL_MEANING,
        "Von der Unter- bis zur Obergrenze: enthält in 95 % der Fälle die wahre Anzahl (ungefähr, "
        "wo der Standardfehler unter 2 liegt).",
        "De la borne inférieure à la borne supérieure : contient l’effectif exact dans 95 % des "
        "cas (environ, là où l’erreur-type est inférieure à 2).",
        "Del límite inferior al superior: contiene el recuento verdadero en el 95 % de los casos "
        "(aproximadamente, donde el error estándar es inferior a 2).",
    ),
    "margin_meaning": (
        "The true count is no further away 95 % of the time.",
        "In 95 % der Fälle liegt die wahre Anzahl nicht weiter entfernt.",
        "Dans 95 % des cas, l’effectif exact n’est pas plus éloigné.",
        "En el 95 % de los casos, el recuento verdadero no está más lejos.",
    ),
    "target_meaning": (
        "The largest standard error that was asked for.",
        "Der größte Standardfehler, der gefordert war.",
        "La plus grande erreur-type demandée.",
        "El mayor error estándar que se pidió.",
    ),
    "share_meaning": (
        "The share of the total in per cent; empty where the total is not publishable.",
        "Der Anteil an der Summe in Prozent; leer, wo die Summe nicht veröffentlichungsreif ist.",
        "La part du total en pourcentage ; vide là où le total n’est pas publiable.",
        "La proporción del total en porcentaje; en blanco donde el total no es publicable.",
    ),
    "share_error_meaning": (
        "The standard error of the share, in percentage points.",
        "Der Standardfehler des Anteils in Prozentpunkten.",
        "L’erreur-type de la part, en points de pourcentage.",
        "El error estándar de la proporción, en puntos porcentuales.",
    ),
    "note_meaning": (
        "What is known of the row besides, in words.",
        "Was außerdem über die Zeile bekannt ist, in Worten.",
        "Ce que l’on sait en outre de la ligne, en toutes lettres.",
        "Lo que además se sabe de la fila, en palabras.",
    ),
    "head_note": ("note", "Anmerkung", "note", "nota"),
    "head_flag": ("met", "Ziel erreicht", "objectif atteint", "objetivo alcanzado"),
    "yes": ("yes", "ja", "oui", "sí"),
    "no": ("no", "nein", "non", "no"),
    "impossible": (
        IMPOSSIBLE_NOTE,
        "laut Codebuch unmöglich",
        "impossible d’après le dictionnaire des codes",
        "imposible según el libro de códigos",
    ),
    "empty_area": (
        EMPTY_NOTE,
        "laut Gebietsliste leer: genau 0, ohne Rauschen",
        "vide d’après la liste des zones : exactement 0, sans bruit",
        "vacía según la lista de zonas: exactamente 0, sin ruido",
    ),
    "noisy_tables": (
        "Noisy tables",
        "Verrauschte Tabellen",
        "Tableaux bruités",
        "Tablas con ruido",
    ),
    "noisy_counts": (
        "Noisy counts",
        "Verrauschte Anzahlen",
        "Effectifs bruités",
        "Recuentos con ruido",
    ),
    "processed_tables": (
        "Processed tables",
        "Nachbearbeitete Tabellen",
        "Tableaux traités",
        "Tablas con tratamiento posterior",
    ),
    "model_tables": (
        "Model-based estimates",
        "Modellbasierte Schätzungen",
        "Estimations fondées sur un modèle",
        "Estimaciones basadas en un modelo",
    ),
    # what formats add to the folder of an export
    "files_html": (
        "`tables.html` shows all tables as crosstabs, in any browser, with nothing beside it",
        "`tables.html` zeigt alle Tabellen als Kreuztabellen, in jedem Browser und ohne weitere "
        "Dateien",
        "`tables.html` présente tous les tableaux croisés, dans n’importe quel navigateur et sans "
        "autre fichier",
        "`tables.html` muestra todas las tablas cruzadas, en cualquier navegador y sin más "
        "archivos",
    ),
    "files_crosstabs": (
        "`crosstabs.xlsx` has each table as a crosstab with totals, on a sheet of its own",
        "`crosstabs.xlsx` enthält jede Tabelle als Kreuztabelle mit Summen auf einem eigenen Blatt",
        "`crosstabs.xlsx` contient chaque tableau croisé avec ses totaux, sur sa propre feuille",
        "`crosstabs.xlsx` contiene cada tabla cruzada con sus totales, en una hoja propia",
    ),
    "files_px": (
        "`px/` has a file a table, for PxWeb and the portals that read its files",
        "`px/` enthält je Tabelle eine Datei, für PxWeb und die Portale, die solche Dateien lesen",
        "`px/` contient un fichier par tableau, pour PxWeb et les portails qui lisent ces fichiers",
        "`px/` contiene un archivo por tabla, para PxWeb y los portales que leen esos archivos",
    ),
    "files_sdmx": (
        "`sdmx/` has `structure.xml` and a file of observations a table, as SDMX-CSV 2.0",
        "`sdmx/` enthält `structure.xml` und je Tabelle eine Datei mit Beobachtungen, als SDMX-CSV "
        "2.0",
        "`sdmx/` contient `structure.xml` et un fichier d’observations par tableau, en SDMX-CSV "
        "2.0",
        "`sdmx/` contiene `structure.xml` y un archivo de observaciones por tabla, en SDMX-CSV 2.0",
    ),
    # names in SDMX, as its code lists for all domains have them
    "frequency": ("Frequency", "Periodizität", "Périodicité", "Frecuencia"),
    "frequency_A": ("Annual", "Jährlich", "Annuelle", "Anual"),
    "frequency_S": (
        "Half-yearly, semester",
        "Halbjährlich",
        "Semestrielle",
        "Semestral",
    ),
    "frequency_T": ("Trimesterly", "Alle vier Monate", "Quadrimestrielle", "Cuatrimestral"),
    "frequency_Q": ("Quarterly", "Vierteljährlich", "Trimestrielle", "Trimestral"),
    "frequency_M": ("Monthly", "Monatlich", "Mensuelle", "Mensual"),
    "frequency_W": ("Weekly", "Wöchentlich", "Hebdomadaire", "Semanal"),
    "frequency_D": ("Daily", "Täglich", "Quotidienne", "Diaria"),
    "time_period": ("Time period", "Zeitraum", "Période", "Periodo"),
    "unit_of_measure": (
        "Unit of measure",
        "Maßeinheit",
        "Unité de mesure",
        "Unidad de medida",
    ),
    "unit_multiplier": (
        "Unit multiplier",
        "Einheitenmultiplikator",
        "Multiplicateur d’unité",
        "Multiplicador de la unidad",
    ),
    "units": ("Units", "Einheiten", "Unités", "Unidades"),
    "decimals": ("Decimals", "Dezimalstellen", "Décimales", "Decimales"),
    "one_decimal": ("1 decimal", "1 Dezimalstelle", "1 décimale", "1 decimal"),
    "n_decimals": ("{n} decimals", "{n} Dezimalstellen", "{n} décimales", "{n} decimales"),
    "observation_status": (
        "Observation status",
        "Beobachtungsstatus",
        "Statut de l’observation",
        "Estado de la observación",
    ),
    "status_A": ("Normal value", "Normaler Wert", "Valeur normale", "Valor normal"),
    "status_E": ("Estimated value", "Geschätzter Wert", "Valeur estimée", "Valor estimado"),
    "status_U": (
        "Low reliability",
        "Geringe Zuverlässigkeit",
        "Faible fiabilité",
        "Baja fiabilidad",
    ),
    "status_O": ("Missing value", "Fehlender Wert", "Valeur manquante", "Valor faltante"),
    "confidentiality": (
        "Confidentiality status",
        "Geheimhaltungsstatus",
        "Statut de confidentialité",
        "Estado de confidencialidad",
    ),
    "free": (
        "Free (free for publication)",
        "Frei (zur Veröffentlichung freigegeben)",
        "Libre (diffusion autorisée)",
        "Libre (publicación autorizada)",
    ),
}
"""By key: in English, German, French and Spanish."""
